"""provision: Servers for both arms: started, filled, copied, with scratch schemas and passwords."""
