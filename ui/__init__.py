"""The web interface: a Streamlit app that knows the gateway's HTTP interface and nothing else of the system."""
