//! The Model Context Protocol: tools of servers as operations, and a registry as a server.
