"""Model configurations from the Hugging Face hub."""
