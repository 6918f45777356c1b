"""Compiled graphs of LangGraph, and what is made of them: LangChain agents, deepagents."""
