"""Sessions that name nobody: items in, the same items with stand-ins for names, texts and addresses out."""
