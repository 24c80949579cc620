"""Opens the page in the person's browser, beside the loop: a browser may take its time, or not be there."""

import threading
import webbrowser


def open_page(address: str) -> None:
    """Show this address, where there is a browser."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
