"""The Ray Serve deployments behind the gateway, and the handles by which it calls them."""
