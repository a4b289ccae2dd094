"""Names that other packages do not document and Kiebitz uses: any later version may lack them.

This is the only list of them. `tests/proxy/test_dependencies.py` fails with a sentence when a name is gone,
or used and not listed. mitmproxy's names are also checked whenever one of its modes starts.
"""

from __future__ import annotations

import dis
import inspect
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

from kiebitz.dissectors.errors import KiebitzError


class Undocumented(NamedTuple):
    """Undocumented names of a package, and the versions of it that were tested.

    A name is written `module:name`, `module:Class.member`, or `module:Class.method(parameter, …)` where the
    names of parameters are used, too.
    """

    tested: tuple[str, ...]
    names: tuple[str, ...]


UNDOCUMENTED = {
    "click": Undocumented(
        ("8.1.8", "8.5.1"),
        (
            "click.core:Command.make_parser",
            "click.core:Group.resolve_command",
            "click.core:Option.add_to_parser",
            "click.exceptions:Exit",
        ),
    ),
    "mitmproxy": Undocumented(
        ("11.0.2", "12.2.3"),
        (
            "mitmproxy.addons.block:Block",
            "mitmproxy.addons.dns_resolver:DnsResolver",
            "mitmproxy.addons.proxyserver:Proxyserver.connections",
            "mitmproxy.addons.proxyserver:Proxyserver.servers",
            "mitmproxy.addons.proxyserver:Proxyserver.setup_servers",
            "mitmproxy.addons.proxyserver:Servers.update",
            "mitmproxy.addons.tlsconfig:TlsConfig",
            "mitmproxy.exceptions:OptionsError",
            "mitmproxy.log:ALERT",
            "mitmproxy.master:Master.done",
            "mitmproxy.master:Master.running",
            "mitmproxy.net.tls:starts_like_dtls_record",
            "mitmproxy.net.tls:starts_like_tls_record",
            "mitmproxy.options:Options",
            "mitmproxy.proxy.commands:CloseConnection",
            "mitmproxy.proxy.commands:SendData",
            "mitmproxy.proxy.events:ConnectionClosed",
            "mitmproxy.proxy.events:DataReceived",
            "mitmproxy.proxy.events:Event",
            "mitmproxy.proxy.layer:CommandGenerator",
            "mitmproxy.proxy.layer:Layer.context",
            "mitmproxy.proxy.layer:NextLayer.data_client",
            "mitmproxy.proxy.layer:NextLayer.layer",
            "mitmproxy.proxy.layers.modes:ReverseProxy",
            "mitmproxy.proxy.layers.tls:dtls_parse_client_hello",
            "mitmproxy.proxy.layers.tls:parse_client_hello",
            "mitmproxy.proxy.layers:ClientTLSLayer",
            "mitmproxy.proxy.layers:DNSLayer",
            "mitmproxy.proxy.layers:ServerTLSLayer.child_layer",
            "mitmproxy.proxy.layers:TCPLayer.__init__(ignore)",
            "mitmproxy.proxy.layers:TCPLayer.done",
            "mitmproxy.proxy.layers:TCPLayer.relay_messages",
            "mitmproxy.proxy.layers:UDPLayer.__init__(ignore)",
            "mitmproxy.proxy.layers:UDPLayer.done",
            "mitmproxy.proxy.layers:UDPLayer.relay_messages",
            "mitmproxy.proxy.mode_servers:WireGuardServerInstance.client_conf",
            "mitmproxy.proxy.mode_specs:ProxyMode.description",
            "mitmproxy.proxy.mode_specs:ProxyMode.parse",
            "mitmproxy.proxy.mode_specs:ReverseMode.address",
            "mitmproxy.proxy.mode_specs:WireGuardMode",
            "mitmproxy.proxy.server:ConnectionHandler.close_connection",
            "mitmproxy.proxy.server:ConnectionHandler.drain_writers",
            "mitmproxy.proxy.server:ConnectionHandler.layer",
            "mitmproxy.proxy.server:ConnectionHandler.server_event",
            "mitmproxy.proxy.server:ConnectionHandler.timeout_watchdog",
            "mitmproxy.proxy.server:ConnectionHandler.transports",
            "mitmproxy.proxy.server:ConnectionIO.handler",
            "mitmproxy.proxy.server:TimeoutWatchdog.timeout",
            "mitmproxy.version:VERSION",
            "mitmproxy_rs:local",
            "mitmproxy_rs:wireguard",
        ),
    ),
    "scapy": Undocumented(
        ("2.7.0", "2.8.0"),
        (
            "scapy.arch.common:compile_filter",
            "scapy.arch.common:free_filter",
            "scapy.config:conf.L2listen",
            "scapy.config:conf.L2socket",
            "scapy.config:conf.l2types",
            "scapy.error:Scapy_Exception",
            "scapy.layers.inet6:IPv6",
            "scapy.supersocket:SuperSocket.closed",
            "scapy.supersocket:SuperSocket.ins",
            "scapy.supersocket:SuperSocket.recv_raw",
            "scapy.supersocket:SuperSocket.select",
            "scapy.utils:RawPcapNgWriter._write_block_idb(linktype, ifname)",
            "scapy.utils:RawPcapNgWriter._write_block_shb",
            "scapy.utils:RawPcapNgWriter._write_packet(linktype, sec, usec, wirelen, comments)",
            "scapy.utils:RawPcapNgWriter.build_block",
            "scapy.utils:RawPcapNgWriter.endian",
            "scapy.utils:RawPcapNgWriter.endian_magic",
            "scapy.utils:RawPcapNgWriter.f",
            "scapy.utils:RawPcapNgWriter.filename",
            "scapy.utils:RawPcapNgWriter.header_present",
            "scapy.utils:RawPcapNgWriter.interfaces2id",
            "scapy.utils:RawPcapNgWriter.linktype",
            "scapy.utils:RawPcapNgWriter.tsresol",
            "scapy.utils:RawPcapNgWriter.write_header",
        ),
    ),
    "textual": Undocumented(
        ("8.0.0", "8.2.8"),
        ("textual.app:App._handle_exception",),
    ),
    "uvicorn": Undocumented(
        ("0.33.0", "0.54.0"),
        (
            "uvicorn.lifespan.on:LifespanOn.state",
            "uvicorn.protocols.http.h11_impl:H11Protocol.__init__(config, server_state, app_state)",
            "uvicorn.protocols.http.h11_impl:H11Protocol.client",
            "uvicorn.protocols.http.h11_impl:H11Protocol.conn",
            "uvicorn.protocols.http.h11_impl:H11Protocol.connection_lost",
            "uvicorn.protocols.http.h11_impl:H11Protocol.connection_made",
            "uvicorn.protocols.http.h11_impl:H11Protocol.cycle",
            "uvicorn.protocols.http.h11_impl:H11Protocol.data_received",
            "uvicorn.protocols.http.h11_impl:H11Protocol.loop",
            "uvicorn.protocols.http.h11_impl:H11Protocol.on_response_complete",
            "uvicorn.protocols.http.h11_impl:H11Protocol.pause_writing",
            "uvicorn.protocols.http.h11_impl:H11Protocol.resume_writing",
            "uvicorn.protocols.http.h11_impl:H11Protocol.transport",
            "uvicorn.protocols.http.h11_impl:RequestResponseCycle.response_complete",
            "uvicorn.server:Server.capture_signals",
            "uvicorn.server:Server.config",
            "uvicorn.server:Server.handle_exit",
            "uvicorn.server:Server.lifespan",
            "uvicorn.server:Server.server_state",
            "uvicorn.server:Server.should_exit",
            "uvicorn.server:Server.shutdown(sockets)",
            "uvicorn.server:Server.started",
            "uvicorn.server:Server.startup(sockets)",
        ),
    ),
}
"""The undocumented names in use, by package."""


class IncompatibleVersion(KiebitzError):
    """The installed version of a package lacks names that Kiebitz uses."""


def check_names(package: str) -> None:
    """Raise IncompatibleVersion if the installed version of `package` lacks a name in `UNDOCUMENTED`.

    This imports the modules of these names.
    """
    tested, names = UNDOCUMENTED[package]
    missing = [name for name in names if not _exists(name)]
    if missing:
        raise IncompatibleVersion(
            f"{package} {version(package)} has no {', '.join(missing)}, which Kiebitz uses; tested were "
            f"{package} {' and '.join(tested)}"
        )


def _exists(name: str) -> bool:
    module, _, path = name.partition(":")
    path, _, parameters = path.removesuffix(")").partition("(")
    try:
        found: object = import_module(module)
    except ImportError:
        return False
    for step in path.split("."):
        if not hasattr(found, step):
            return isinstance(found, type) and _is_set_on_instances(found, step)
        found = getattr(found, step)
    if not parameters:
        return True
    return callable(found) and {*parameters.split(", ")} <= {*inspect.signature(found).parameters}


def _is_set_on_instances(cls: type, name: str) -> bool:
    """Return True if a method of the class or of its bases sets the attribute."""
    return any(
        instruction.opname == "STORE_ATTR" and instruction.argval == name
        for base in cls.__mro__
        for method in vars(base).values()
        if inspect.isfunction(method)
        for instruction in dis.get_instructions(method)
    )
