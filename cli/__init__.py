"""The user interface: commands, terminal output, web page. The only package that imports all others."""
