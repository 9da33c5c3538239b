"""What a finished run costs: time, price, failures, storage, energy; renting against owning."""
