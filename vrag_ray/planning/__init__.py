"""How much a service of a given size needs: arithmetic on unit figures, and a simulation of its slowest answers."""
