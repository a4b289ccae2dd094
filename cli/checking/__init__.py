"""How what is wrong in a session is shown: flaw by flaw with the bytes, and summed up."""
