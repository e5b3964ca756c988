package import EventLoop
package import Message

// Conversions between the addresses of the edge (`SocketAddress`) and those of the core (`IPAddress`).

extension IPAddress {
    init?(_ address: SocketAddress) {
        if let v4 = address.v4 {
            self.init(v4: v4)
        } else if let v6 = address.v6 {
            self.init(v6: v6.0, low: v6.1)
        } else {
            return nil
        }
    }
}

extension SocketAddress {
    package init(_ address: IPAddress, port: UInt16) {
        if let v4 = address.v4 {
            self.init(v4: v4, port: port)
        } else {
            let v6 = address.v6
            self.init(v6: v6.high, low: v6.low, port: port)
        }
    }
}
