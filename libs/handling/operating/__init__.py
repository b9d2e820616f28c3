"""What operators ask of every service alike, and what their writes have in common."""
