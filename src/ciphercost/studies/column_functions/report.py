def render(result): return str(result)
