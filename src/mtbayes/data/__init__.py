"""What happens to data before learning: dirt that is put in on purpose, and known."""
