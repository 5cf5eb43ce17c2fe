"""nginx: packages and configuration. `_web` has what it shares with Apache."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines._web.family import Config, LargeDocument, Web, versions_and_suites
from ciphercost.engines._web.log import NOTE
from ciphercost.engines._web.settings import NO_PROXY, NO_STAPLING, OF_HTTP, with_settings
from ciphercost.engines.capabilities.settings import Decided
from ciphercost.host import versions

SPARE = 1000
"""Spare connections: with one connection per operation, the server closes each a little after the next one opens."""
# tcp_nopush is off, as by default: with it, Linux 6.18 sends some unencrypted responses 40 ms late, whatever the client is.
CONFIG = """\
daemon off;
pid {directory}/nginx.pid;
error_log stderr error;
worker_processes {cores};
worker_rlimit_nofile {files};
events {{
    worker_connections {connections};
}}
http {{
    types {{ text/html html; text/plain txt; image/jpeg jpg; application/json json; }}
    default_type application/octet-stream;
    client_body_temp_path {directory}/tmp/body;
    proxy_temp_path {directory}/tmp/proxy;
    fastcgi_temp_path {directory}/tmp/fastcgi;
    uwsgi_temp_path {directory}/tmp/uwsgi;
    scgi_temp_path {directory}/tmp/scgi;
    client_max_body_size 0;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    {keepalive_time}
    tcp_nopush off;
    root {documents};
    index index.html;
    {http2}
    map "$connection_requests $arg_{note}" $noted {{ "~^1 " 1; "~ ." 1; default 0; }}
    log_format ciphercost "$arg_{note}\\t$ssl_protocol\\t$ssl_cipher\\t$ssl_session_reused\\t$ssl_client_verify\\t$server_protocol";
    access_log {log} ciphercost if=$noted;
{servers}}}
"""
SERVER = """\
    server {{
        listen {address}:{port}{ssl} backlog=4096;{quic}
        sendfile {sendfile};
        location / {{ error_page 405 =200 $uri; }}{tls}
    }}
"""
"""A POST to a document returns the document."""
QUIC = """
        listen {address}:{port} quic reuseport;"""
"""Each worker has a socket of its own, so that a connection's datagrams all reach the same one."""
TLS = """
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols {protocols};
        ssl_ciphers {suites};
        ssl_ecdh_curve {group};
        ssl_session_timeout 1d;
        ssl_session_cache {cache};
        ssl_session_tickets {tickets};
        ssl_stapling off;{client}"""
CLIENT = """
        ssl_client_certificate {ca};
        ssl_verify_client on;"""


MAIN = re.compile("worker_(?!connections|aio)[a-z_]+|thread_pool|timer_resolution|pcre_jit")
"""Directives that stand outside of any block."""
EVENTS = re.compile("worker_(connections|aio_requests)|multi_accept|accept_mutex.*|use")
"""Directives of the block `events`. All others stand in the block `http`."""


class Nginx(LargeDocument, Web):
    name = "nginx"
    title = "nginx"
    programs = ("nginx",)
    suites = MappingProxyType({"1.18": "bullseye", "1.22": "bookworm", "1.26": "trixie"})
    packages = ("nginx",)
    setting_example = "ssl_buffer_size=4k"
    decided_settings = (
        Decided("ssl_protocols", "version"),
        Decided("ssl_ciphers", "cipher"),
        Decided("ssl_(ecdh_curve|dhparam)", "group"),
        Decided("ssl_conf_command", "version", values="(?i)(Min|Max)?Protocol.*"),
        Decided("ssl_conf_command", "cipher", values="(?i)Cipher.*"),
        Decided("ssl_conf_command", "group", values="(?i)(Groups|Curves).*"),
        Decided("ssl_(certificate|certificate_key|password_file)", "certificate"),
        Decided("ssl_(verify_.*|client_certificate|trusted_certificate|crl)", "client-cert", value="on"),
        Decided("ssl_session_ticket.*", "resumption", value="tickets"),
        Decided(
            "ssl_early_data", why="ciphercost measures early data on Caddy: caddy:tls --set resumption=0-rtt; remove it"
        ),
        Decided("ssl_(o?cs?p|stapling).*", why=NO_STAPLING),
        Decided("ssl"),
        Decided("http[23]", why=OF_HTTP),
        Decided("(proxy|fastcgi|uwsgi|scgi|grpc|memcached|upstream|resolver).*", why=NO_PROXY),
    )
    kept_settings = (
        "listen|server|server_name.*|location|root|alias|index|autoindex.*|include|load_module|user|daemon|master_process|pid"
        "|lock_file|env|(error|access)_log|log_.*|.*_temp_path|return|rewrite|map.*|if|http|events|stream|mail|types|error_page"
        "|working_directory|debug_points|ssl_engine|ssl_reject_handshake|perl.*|js_.*|set|auth_.*|allow|deny|internal|try_files"
    )
    http2_since = "1.25.1"
    http3_since = "1.25.0"
    sendfile_stalls_http2 = True  # seen with 1.26, for any client
    version_option = "-v"
    version_words = r"nginx/(\d[\d.]+)"

    def write(self, config: Config, version: str) -> list[str | Path]:
        ports, key = config.ports, versions.version_key(version)
        server = partial(SERVER.format, address=config.address, quic="")
        servers = [
            server(port=ports.clear, ssl="", sendfile="on", tls=""),
            server(port=ports.no_sendfile, ssl="", sendfile="off", tls=""),
        ]
        if given := config.tls:
            cached = given["resumption"] == "cache"
            protocols, suites = versions_and_suites(given)
            encrypted = TLS.format(
                certificate=given["certificate"],
                key=given["key"],
                protocols=" ".join(protocols),
                suites=suites,
                group=given["group"] or "auto",
                cache="shared:ciphercost:64m" if cached else "off",
                tickets="on" if given["resumption"] == "tickets" else "off",
                client=CLIENT.format(ca=given["client_ca"]) if given["client_ca"] else "",
            )
            quic = QUIC.format(address=config.address, port=ports.tls) if config.http3 else ""
            servers.append(server(port=ports.tls, ssl=" ssl", sendfile="on", tls=encrypted, quic=quic))
        text = CONFIG.format(
            directory=config.directory,
            documents=config.documents,
            log=config.log,
            cores=config.cores,
            # One worker may get all connections, and its listening sockets count too.
            connections=config.connections + SPARE,
            files=2 * (config.connections + SPARE),
            http2="http2 on;" if key >= versions.version_key(self.http2_since) else "",
            # Otherwise it closes connections after an hour, and slices from then on would have handshakes.
            keepalive_time="keepalive_time 30d;" if key >= versions.version_key("1.19.10") else "",
            note=NOTE,
            servers="".join(servers),
        )
        settings = dict(config.settings)
        if sending := settings.pop("sendfile", ""):
            text = text.replace("sendfile on;", f"sendfile {sending};")
        text = with_settings(text, settings, _place, ";")
        path = config.directory / "nginx.conf"
        path.write_text(text)
        # An older one first tries the log that was compiled in, and goes on without it.
        log = ["-e", "stderr"] if key >= versions.version_key("1.19.5") else []
        return ["-c", path, "-p", config.directory, *log]

    def malformed(self, name: str, value: str) -> str:  # noqa: ARG002
        """Refuse what would end the directive."""
        return "a value of nginx has no ; { } or #; write one directive" if re.search("[;{}#]", value) else ""


def _place(name: str) -> str:
    """Return the line below which a directive belongs."""
    if MAIN.fullmatch(name):
        return "daemon off;\n"
    return "events {\n" if EVENTS.fullmatch(name) else "http {\n"


ENGINE = Nginx()
