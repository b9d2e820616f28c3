"""What the gateway answers to operators itself: about its own keys and operators, and over all services."""
