"""How posts come: Bluesky's Jetstream, Twitter v1.1 and v2, Mastodon, this project's own, counts and ids."""
