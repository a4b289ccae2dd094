"""Cases of `kiebitz probe`, tried on a live peer, and what is told of them."""
