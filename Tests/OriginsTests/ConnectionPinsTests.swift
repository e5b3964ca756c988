import Message
import Routing
import Origins
import Testing

@Suite("RFC 4559 §6: pins of a client connection") struct ConnectionPinsTests {
    @Test func `an origin keeps its pin until too many others have one`() {
        func origin(_ number: Int) -> Origin { Origin(.http, Endpoint(host: "\(number).example", port: 80)) }
        var pins = ConnectionPins()
        for number in 0..<ConnectionPins.countMax {
            #expect(pins.identity(at: origin(number)) == nil)
            #expect(pins.pin(origin(number), to: .client(UInt64(number))) == nil)
        }
        #expect(pins.identity(at: origin(0)) == .client(0))
        #expect(pins.pin(origin(9), to: .client(9)) == .client(0))
        #expect(pins.identity(at: origin(0)) == nil)
        #expect(pins.identities == [1, 2, 3, 9].map { .client($0) })
    }

    @Test func `scheme and port are part of an origin`() {
        var pins = ConnectionPins()
        _ = pins.pin(Origin(.http, Endpoint(host: "a.example", port: 443)), to: .client(1))
        #expect(pins.identity(at: Origin(.https, Endpoint(host: "a.example", port: 443))) == nil)
        #expect(pins.identity(at: Origin(.http, Endpoint(host: "a.example", port: 80))) == nil)
    }
}
