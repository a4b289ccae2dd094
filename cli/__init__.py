"""What people see: the commands. The only room that wires the other three together."""
