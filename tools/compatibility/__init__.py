"""Whether a card, driver, CUDA, PyTorch, library, number format and attention kernel work together."""
