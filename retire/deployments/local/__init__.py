"""A real model on this machine: weights, a supervised llama.cpp server, and its deployment."""
