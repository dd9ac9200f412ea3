"""The agent: a sans-IO episode over a memory graph, and the asyncio driver that feeds it. No Ray, no torch."""
