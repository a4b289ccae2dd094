"""How bytes come and go: relays, sniffers and capture files. This room knows no game protocol."""
