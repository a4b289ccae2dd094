"""A recorded session played again: the script, the parts in it, and what they wait for."""
