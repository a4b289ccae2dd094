from kiebitz.dissectors.protocol_file.reading.notation import *  # temporary
