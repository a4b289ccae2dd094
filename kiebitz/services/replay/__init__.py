"""A recorded session played again: in the terminal, or a part of it to live peers."""
