"""What can be proved about a fit: certificates of its risk, the influence of a row."""
