from kiebitz.dissectors.protocol_file.reading.errors import *  # temporary
