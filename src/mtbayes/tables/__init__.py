"""What can be asked of a model of a table: who is wrong and why, what columns do, who is better."""
