"""Mäxchen (Mia): a dice game of bluffing, over UDP, one message per datagram."""
