"""The formats of posts: Bluesky's Jetstream, Twitter v1.1 and v2, Mastodon, this project's, counts, ids."""
