"""A suite that is made, not downloaded: small visual documents of harbours, and questions whose answers are known."""
