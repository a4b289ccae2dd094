"""What can be asked of a program that speaks a protocol: cases, their acts, and the verdict on what came."""
