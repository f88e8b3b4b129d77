"""Tests that drive a headless Chromium over the built book."""
