"""What a pasted out-of-memory message says, what filled the memory, and the knob that helps."""
