"""Security headers on every answer: the page loads nothing from, and sends nothing to, anywhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

INLINE_SCRIPT: Final = "sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA="
"""Digest of the one inline script in Streamlit 1.67's index.html (a test computes it afresh)."""

POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' '{INLINE_SCRIPT}'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' ws: wss:",
        "worker-src 'self' blob:",
        "form-action 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_ENCODED: Final = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class SecurityHeaders:
    """ASGI middleware that adds `HEADERS` to every HTTP answer."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with the headers added."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_ENCODED]
            await send(message)

        await self.app(scope, receive, answer)
