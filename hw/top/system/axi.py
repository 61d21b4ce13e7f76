"""The ports of AXI4 and AXI4-Lite, under the names that other tools look for."""

from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.registers import SPACE_BYTES

__all__ = ["CONTROL_DOC", "INCR", "MANAGER_DOC", "control_ports", "manager_ports"]

INCR = 1

_ADDRESS_DOC = {
    "id": "identifier",
    "addr": "first byte",
    "len": "beats of the burst less one",
    "size": "log2 of the bytes of a beat",
    "burst": "kind of burst: INCR",
    "lock": "0: normal access",
    "cache": "0011: normal, bufferable",
    "prot": "000: unprivileged, secure data",
    "qos": "0000: no quality of service",
    "valid": "the request is valid",
    "ready": "and taken",
}
MANAGER_DOC = {
    **{f"m_axi_aw{name}": f"write request: {text}" for name, text in _ADDRESS_DOC.items()},
    "m_axi_wdata": "write data",
    "m_axi_wstrb": "bytes of them that are written",
    "m_axi_wlast": "last beat of the burst",
    "m_axi_wvalid": "write data are valid",
    "m_axi_wready": "and taken",
    "m_axi_bid": "write response: identifier",
    "m_axi_bresp": "write response: 0 OKAY, 2 SLVERR, 3 DECERR",
    "m_axi_bvalid": "write response is valid",
    "m_axi_bready": "and taken: always 1",
    **{f"m_axi_ar{name}": f"read request: {text}" for name, text in _ADDRESS_DOC.items()},
    "m_axi_rid": "read data: identifier",
    "m_axi_rdata": "read data",
    "m_axi_rresp": "read data: 0 OKAY, 2 SLVERR, 3 DECERR",
    "m_axi_rlast": "last beat of the burst",
    "m_axi_rvalid": "read data are valid",
    "m_axi_rready": "and taken: always 1",
}


def manager_ports(p):
    """An AXI4 manager."""
    ports = {}
    for channel in ("aw", "ar"):
        widths = {"id": p.id_width, "addr": p.address_width, "len": 8, "size": 3, "burst": 2, "lock": 1}
        widths |= {"cache": 4, "prot": 3, "qos": 4, "valid": 1}
        ports |= {f"m_axi_{channel}{name}": Out(width) for name, width in widths.items()}
        ports[f"m_axi_{channel}ready"] = In(1)
        if channel == "aw":
            ports |= {
                "m_axi_wdata": Out(p.data_width),
                "m_axi_wstrb": Out(p.bus_bytes),
                "m_axi_wlast": Out(1),
                "m_axi_wvalid": Out(1),
                "m_axi_wready": In(1),
                "m_axi_bid": In(p.id_width),
                "m_axi_bresp": In(2),
                "m_axi_bvalid": In(1),
                "m_axi_bready": Out(1),
            }
    ports |= {
        "m_axi_rid": In(p.id_width),
        "m_axi_rdata": In(p.data_width),
        "m_axi_rresp": In(2),
        "m_axi_rlast": In(1),
        "m_axi_rvalid": In(1),
        "m_axi_rready": Out(1),
    }
    return ports


_ADDRESS = (SPACE_BYTES - 1).bit_length()
_CONTROL = {
    "awaddr": (In(_ADDRESS), "write address"),
    "awprot": (In(3), "not used"),
    "awvalid": (In(1), "write address is valid"),
    "awready": (Out(1), "and taken"),
    "wdata": (In(32), "write data"),
    "wstrb": (In(4), "bytes that are written: all, else SLVERR"),
    "wvalid": (In(1), "write data are valid"),
    "wready": (Out(1), "and taken"),
    "bresp": (Out(2), "write response: 0 OKAY, 2 SLVERR"),
    "bvalid": (Out(1), "it is valid"),
    "bready": (In(1), "and taken"),
    "araddr": (In(_ADDRESS), "read address"),
    "arprot": (In(3), "not used"),
    "arvalid": (In(1), "read address is valid"),
    "arready": (Out(1), "and taken"),
    "rdata": (Out(32), "read data"),
    "rresp": (Out(2), "read response: 0 OKAY, 2 SLVERR"),
    "rvalid": (Out(1), "both are valid"),
    "rready": (In(1), "and taken"),
}
CONTROL_DOC = {name: text for name, (_, text) in _CONTROL.items()}


def control_ports(prefix=""):
    """An AXI4-Lite subordinate of 32 bits."""
    return {prefix + name: port for name, (port, _) in _CONTROL.items()}
