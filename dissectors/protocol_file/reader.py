from kiebitz.dissectors.protocol_file.reading.reader import *  # temporary
