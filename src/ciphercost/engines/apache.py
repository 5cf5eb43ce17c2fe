"""The Apache HTTP server with mpm_event: packages and configuration. `_web` has what it shares with nginx."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines._web.family import Config, LargeDocument, Web, versions_and_suites
from ciphercost.engines._web.log import NOTE
from ciphercost.engines._web.settings import NO_PROXY, NO_STAPLING, OF_HTTP, with_settings
from ciphercost.engines.capabilities.settings import Decided, canonical
from ciphercost.host import tls_names
from ciphercost.model.errors import MissingServer

MODULES = ("mpm_event", "authz_core", "dir", "mime", "log_config", "setenvif", "http2", "ssl", "socache_shmcb")
MORE_MODULES = MappingProxyType(
    {
        "deflate.*|.*outputfilter.*": ("filter", "deflate"),
        "brotli.*": ("filter", "brotli"),
        "(request)?header": ("headers",),
        "expires.*": ("expires",),
        "requestreadtimeout": ("reqtimeout",),
    }
)
"""Modules that are loaded only where a setting needs them, by the setting's name."""
PLACES = ("lib/apache2/modules", "lib/httpd/modules", "lib64/httpd/modules", "libexec/apache2", "modules")
CONFIG = """\
ServerRoot {directory}
ServerName localhost
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}/tmp
Mutex posixsem
ErrorLog {directory}/error.log
LogLevel crit
TypesConfig {directory}/mime.types
{modules}
{listen}
ListenBacklog 4096
StartServers {processes}
ServerLimit {processes}
ThreadLimit {threads}
ThreadsPerChild {threads}
ThreadStackSize 262144
MinSpareThreads 1
MaxSpareThreads {workers}
MaxRequestWorkers {workers}
AsyncRequestWorkerFactor 16
MaxConnectionsPerChild 0
KeepAlive On
KeepAliveTimeout 3600
MaxKeepAliveRequests 0
Timeout 3600
Protocols h2 h2c http/1.1
H2Direct on
H2Upgrade off
DocumentRoot {documents}
DirectoryIndex index.html
<Directory {documents}>
    Options FollowSymLinks
    Require all granted
</Directory>
SetEnvIf Connection close noted
SetEnvIfExpr "%{{QUERY_STRING}} =~ /(?:^|&){note}=([0-9a-f]+)/" noted {note}=$1
LogFormat "%{{{note}}}e\\t%{{SSL_PROTOCOL}}x\\t%{{SSL_CIPHER}}x\\t%{{SSL_SESSION_RESUMED}}x\\t%{{SSL_CLIENT_VERIFY}}x\\t%H" {note}
CustomLog {log} {note} "expr=reqenv('noted') != '' || reqenv('H2_STREAM_ID') == '1'"
EnableSendfile On
{hosts}"""
"""It logs requests with a note, the last request of an HTTP/1.1 connection, and the first of an HTTP/2 connection."""
NO_SENDFILE = """\
<VirtualHost {address}:{port}>
    EnableSendfile Off
</VirtualHost>
"""
TLS = """\
SSLSessionCache {cache}
SSLUseStapling off
<VirtualHost {address}:{port}>
    SSLEngine on
    SSLCertificateFile {certificate}
    SSLCertificateKeyFile {key}
    SSLProtocol -all {protocols}
    SSLCipherSuite {suites12}
    SSLCipherSuite TLSv1.3 {suites13}
    SSLSessionTickets {tickets}
    SSLSessionCacheTimeout 86400{group}{client}
</VirtualHost>
"""
CLIENT = """
    SSLCACertificateFile {ca}
    SSLVerifyClient require
    SSLVerifyDepth 1"""


class Apache(LargeDocument, Web):
    name = "apache"
    title = "Apache"
    setting_example = "KeepAliveTimeout=5"
    decided_settings = (
        Decided("sslprotocol", "version"),
        Decided("sslciphersuite", "cipher"),
        Decided("sslopensslconfcmd", "version", values="(?i)(Min|Max)?Protocol.*"),
        Decided("sslopensslconfcmd", "cipher", values="(?i)Cipher.*"),
        Decided("sslopensslconfcmd", "group", values="(?i)(Groups|Curves|DHParameters|ECDHParameters).*"),
        Decided("sslcertificate.*|sslpassphrasedialog", "certificate"),
        Decided("ssl(ca|verify|cadnrequest).*", "client-cert", value="on"),
        Decided("sslsessionticket.*", "resumption", value="tickets"),
        Decided("ssl(ocsp|stapling|usestapling).*", why=NO_STAPLING),
        Decided("sslengine"),
        Decided("protocols.*|http3|h2direct|h2upgrade", why=OF_HTTP),
        Decided("(proxy|balancer|sslproxy).*", why=NO_PROXY),
    )
    kept_settings = (
        "serverroot|servername|serveralias|pidfile|defaultruntimedir|coredumpdirectory|errorlog.*|.*customlog|transferlog|logformat"
        "|loglevel|typesconfig|load(module|file)|listen|documentroot|directoryindex|include.*|user|group|chrootdir|setenv.*"
        "|scoreboardfile|mutex|sslrandomseed|sslcryptodevice|define|undefine|alias.*|script.*|action|ext.*filter.*|rewrite.*"
        "|(auth|require|allow|deny|order).*|options|accessfilename|useragent.*|errordocument"
    )
    no_http3 = "the Apache HTTP server has no HTTP/3"
    programs = ("apache2", "httpd")
    suites = MappingProxyType({"2.4": "trixie"})
    packages = ("apache2-bin",)
    version_option = "-v"
    version_words = r"Apache/(\d[\d.]+)"

    def write(self, config: Config, version: str) -> list[str | Path]:  # noqa: ARG002
        ports = config.ports
        hosts = NO_SENDFILE.format(address=config.address, port=ports.no_sendfile)
        listening = [ports.clear, ports.no_sendfile]
        if given := config.tls:
            listening.append(ports.tls)
            cached = given["resumption"] == "cache"
            protocols, suites = versions_and_suites(given)
            hosts = (
                TLS.format(
                    address=config.address,
                    port=ports.tls,
                    certificate=given["certificate"],
                    key=given["key"],
                    protocols=" ".join(f"+{protocol}" for protocol in protocols),
                    suites12=suites,
                    suites13=":".join(tls_names.offered("1.3")),
                    cache=f"shmcb:{config.directory / 'tmp' / 'sessions'}(33554432)" if cached else "none",
                    tickets="on" if given["resumption"] == "tickets" else "off",
                    group=f"\n    SSLOpenSSLConfCmd Groups {given['group']}" if given["group"] else "",
                    client=CLIENT.format(ca=given["client_ca"]) if given["client_ca"] else "",
                )
                + hosts
            )
        # One process per core, each with a thread for every connection. A process without free threads closes
        # kept-alive connections, and a connection that has negotiated TLS holds its thread until the first request. All
        # threads exist from the start, so none appears or ends under load.
        processes, threads = config.cores, config.connections
        text = CONFIG.format(
            directory=config.directory,
            documents=config.documents,
            modules=modules(config.root, config.settings),
            listen="\n".join(f"Listen {config.address}:{port}" for port in listening),
            processes=processes,
            threads=threads,
            workers=processes * threads,
            note=NOTE,
            log=config.log,
            hosts=hosts,
        )
        settings = dict(config.settings)
        if sending := next((settings.pop(name) for name in list(settings) if canonical(name) == "enablesendfile"), ""):
            text = text.replace("EnableSendfile On", f"EnableSendfile {sending}")
        text = with_settings(text, settings, lambda _: "DirectoryIndex index.html\n")
        (config.directory / "mime.types").write_text(
            "text/html html\ntext/plain txt\nimage/jpeg jpg\napplication/json json\n"
        )
        path = config.directory / "apache.conf"
        path.write_text(text)
        return ["-DFOREGROUND", "-f", path]

    def malformed(self, name: str, value: str) -> str:  # noqa: ARG002
        """Refuse what would join the next line, or begin a command."""
        return "a value of Apache does not end with a backslash and has no |" if re.search(r"\\$|\|", value) else ""


def modules(root: Path, settings: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the LoadModule lines, with the module directory of this build. Raises MissingServer."""
    place = next((root / directory for directory in PLACES if (root / directory / "mod_mpm_event.so").exists()), None)
    if place is None:
        raise MissingServer(
            f"Apache in {root}: its modules are missing (looked for mod_mpm_event.so in {', '.join(PLACES)}). "
            "Install the whole server package."
        )
    # A module without a file is built in.
    files = {name: place / f"mod_{name}.so" for name in (*MODULES, *_more(settings))}
    return "\n".join(f"LoadModule {name}_module {file}" for name, file in files.items() if file.exists())


def _more(names: Iterable[str]) -> list[str]:
    """Return the modules that the user's settings need beside ours. Pure."""
    needed = [
        modules for name in names for pattern, modules in MORE_MODULES.items() if re.fullmatch(pattern, canonical(name))
    ]
    return list(dict.fromkeys(module for several in needed for module in several))


ENGINE = Apache()
