"""Messages in JSON, for built-in protocols and protocol files: types, rows, codec, framer."""
