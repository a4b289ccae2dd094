"""Items on their way from the machines where they are recorded to where they are put together."""
