"""The dashboard: the only part that knows Streamlit."""
