"""Pages of applications made with Django and Flask, with their CSRF tokens and session cookies, measured as they are."""

from __future__ import annotations

import os
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from ciphercost.host import pki
from test_real import measured, result_of

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--clients", "2")
TERMS = "<p>Terms and conditions apply to everything on this page, and to every other one.</p>" * 20


def flask_shop() -> Any:
    import flask

    app = flask.Flask("shop")
    app.secret_key = secrets.token_hex(16)
    template = "<form method=post><input type=hidden name=csrf value={{ token }}></form>{{ now }}" + TERMS

    @app.get("/")
    def home() -> str:
        flask.session["csrf"] = flask.session.get("csrf") or secrets.token_hex(16)
        return flask.render_template_string(template, token=flask.session["csrf"], now=time.time())

    @app.post("/cart")
    def cart() -> Any:
        if flask.request.headers.get("X-CSRF") != "from-the-form":
            flask.abort(403)
        return {"items": flask.request.get_json()["items"], "at": time.time()}

    return app


def django_login() -> Any:
    import django
    from django.conf import settings

    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={},
        INSTALLED_APPS=["django.contrib.sessions"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
        ],
        ROOT_URLCONF=__name__,
        SECRET_KEY=secrets.token_hex(16),
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    )
    django.setup()
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.template import engines
    from django.urls import path

    page = engines["django"].from_string(
        "<form method=post>{% csrf_token %}<input name=user></form>{{ request.build_absolute_uri }} {% now 'c' %}"
        + TERMS
    )

    def login(request: Any) -> Any:
        request.session["visits"] = request.session.get("visits", 0) + 1
        return HttpResponse(page.render({}, request))

    urlpatterns[:] = [path("", login)]
    return get_wsgi_application()


urlpatterns: list[Any] = []
APPLICATIONS: dict[str, Callable[[], Any]] = {"flask": flask_shop, "django": django_login}


@contextmanager
def served(app: Any, site_pki: pki.Pki) -> Iterator[tuple[str, str]]:
    """The application's two addresses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(site_pki.certificate, site_pki.key)
    servers = [make_server("127.0.0.1", 0, app, threaded=True, ssl_context=tls) for tls in (None, context)]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield f"http://localhost:{servers[0].port}/", f"https://localhost:{servers[1].port}/"
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture(scope="module")
def site_pki(tmp_path_factory: pytest.TempPathFactory) -> pki.Pki:
    return pki.Pki(tmp_path_factory.mktemp("certificates"), "ecdsa-p256", owner=(os.geteuid(), os.getegid()))


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_page_with_a_csrf_token_and_a_session(tmp_path: Path, site_pki: pki.Pki, name: str) -> None:
    pytest.importorskip(name)
    with served(APPLICATIONS[name](), site_pki) as (plain, encrypted):
        argv = ("--url", plain, "--url", encrypted, "--ca", str(site_pki.ca), "--json", "out.json")
        done = measured("run", "url:tls", *argv, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert "values-vary" in {warning["code"] for warning in cell["warnings"]}


def test_posts_with_a_header_and_a_body_from_a_file(tmp_path: Path, site_pki: pki.Pki) -> None:
    pytest.importorskip("flask")
    (tmp_path / "cart.json").write_text('{"items": ["$1", "\\u00e9"]}')
    (tmp_path / "shop.http").write_text("POST /cart\n    X-CSRF: from-the-form\n    < cart.json\n")
    with served(flask_shop(), site_pki) as (plain, encrypted):
        argv = (
            "--url",
            plain,
            "--url",
            encrypted,
            "--ca",
            str(site_pki.ca),
            "--sql",
            "shop.http",
            "--json",
            "out.json",
        )
        done = measured("run", "url:tls", *argv, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert "your POST requests may change" in " ".join(done.stderr.split()).replace("=== ", "")
