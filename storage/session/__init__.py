"""The public interface to a session: typed records, and messages in detail."""
