"""What operators ask of the services (family `operator`): the models and rows, by subject."""
