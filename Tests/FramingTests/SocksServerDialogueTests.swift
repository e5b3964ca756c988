import Framing
import Message
import Testing

private typealias Dialogue = SocksServerDialogue

@Suite("RFC 1928, RFC 1929: a SOCKS5 client is answered")
struct SocksServerDialogueTests {
    private static let v4Request: [UInt8] = [5, 1, 0, 1, 192, 0, 2, 1, 0x01, 0xBB]
    private static let logIn: [UInt8] = [1, 3] + Array("ali".utf8) + [6] + Array("sesame".utf8)

    /// All steps but the waiting.
    private static func play(
        _ pieces: [[UInt8]], password: Dialogue.Password = .ignored, isRight: Bool = true
    ) -> (steps: [SocksServerDialogue.Step], unread: [UInt8]) {
        var dialogue = Dialogue(password: password)
        var steps: [SocksServerDialogue.Step] = []
        var rest = pieces[...]
        while let piece = rest.popFirst() {
            var step = dialogue.on(piece)
            while step != .wait {
                steps.append(step)
                switch step {
                case .send: step = dialogue.on([])
                case .logIn: step = dialogue.checked(isRight: isRight)
                case .connect, .refuse: return (steps, dialogue.unread + rest.joined())
                case .wait: break
                }
            }
        }
        return (steps, dialogue.unread)
    }

    static let targets: [(request: [UInt8], target: SocksTarget)] = [
        ([5, 1, 0, 1, 192, 0, 2, 1, 0x01, 0xBB], .address(IPAddress(v4: 0xC000_0201), port: 443)),
        ([5, 1, 0, 3, 6] + Array("a.test".utf8) + [0, 80], .name(Array("a.test".utf8), port: 80)),
        (
            [5, 1, 0, 4, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF],
            .address(IPAddress(v6: 0x2001_0DB8_0000_0000, low: 1), port: 65535)
        ),
        ([5, 1, 0, 3, 0, 0, 80], .name([], port: 80)),
    ]

    @Test(arguments: targets) func `§4, §5: the request names the target`(
        _ row: (request: [UInt8], target: SocksTarget)
    ) {
        let (steps, unread) = Self.play([[5, 1, 0], row.request + [9, 9]])
        #expect(steps == [.send([5, 0]), .connect(row.target)])
        #expect(unread == [9, 9], "what follows belongs into the tunnel")
    }

    static let methods: [(offered: [UInt8], password: SocksServerDialogue.Password, chosen: UInt8)] = [
        ([0], .ignored, 0), ([2, 0], .ignored, 0), ([2], .ignored, 2), ([1, 3], .ignored, 0xFF), ([], .ignored, 0xFF),
        ([0], .required, 0xFF), ([0, 2], .required, 2), ([1], .required, 0xFF),
        ([0], .optional, 0), ([0, 2], .optional, 2), ([2], .optional, 2), ([1], .optional, 0xFF),
    ]

    @Test(arguments: methods) func `§3: one of the methods on offer is chosen, or none is acceptable`(
        _ row: (offered: [UInt8], password: SocksServerDialogue.Password, chosen: UInt8)
    ) {
        let greeting = [5, UInt8(row.offered.count)] + row.offered
        let (steps, _) = Self.play([greeting], password: row.password)
        #expect(steps == (row.chosen == 0xFF ? [.refuse(reply: [5, 0xFF], .method)] : [.send([5, row.chosen])]))
    }

    @Test(arguments: [true, false]) func `RFC 1929: the user and the password are asked about`(_ isRight: Bool) {
        let (steps, _) = Self.play([[5, 1, 2], Self.logIn, Self.v4Request], password: .required, isRight: isRight)
        let asked: [SocksServerDialogue.Step] = [
            .send([5, 2]), .logIn(user: Array("ali".utf8), password: Array("sesame".utf8)),
        ]
        let rest: [SocksServerDialogue.Step] =
            isRight
            ? [.send([1, 0]), .connect(.address(IPAddress(v4: 0xC000_0201), port: 443))]
            : [.refuse(reply: [1, 1], .logIn)]
        #expect(steps == asked + rest)
    }

    @Test func `a client that insists on a password where none is needed may send any`() {
        let (steps, _) = Self.play([[5, 1, 2], Self.logIn, Self.v4Request])
        #expect(
            steps == [.send([5, 2]), .send([1, 0]), .connect(.address(IPAddress(v4: 0xC000_0201), port: 443))])
    }

    static let refused: [(request: [UInt8], reply: [UInt8], fault: SocksServerDialogue.Fault)] = [
        ([5, 2, 0, 1, 192, 0, 2, 1, 0, 80], SocksReply.commandNotSupported.bytes, .command),
        ([5, 3, 0, 1, 0, 0, 0, 0, 0, 0], SocksReply.commandNotSupported.bytes, .command),
        ([5, 9, 0, 1, 0, 0, 0, 0, 0, 0], SocksReply.commandNotSupported.bytes, .command),
        ([5, 1, 0, 2, 0, 0], SocksReply.addressTypeNotSupported.bytes, .addressType),
        ([4, 1, 0, 80, 192, 0, 2, 1, 0], SocksReply.generalFailure.bytes, .malformed),
    ]

    @Test(arguments: refused) func `§6: what is not offered has its reply`(
        _ row: (request: [UInt8], reply: [UInt8], fault: SocksServerDialogue.Fault)
    ) {
        #expect(Self.play([[5, 1, 0], row.request]).steps == [.send([5, 0]), .refuse(reply: row.reply, row.fault)])
    }

    @Test func `a greeting or a log-in of another version is refused`() {
        #expect(Self.play([[4, 1, 0]]).steps == [.refuse(reply: [], .malformed)])
        #expect(
            Self.play([[5, 1, 2], [2, 1]], password: .required).steps
                == [.send([5, 2]), .refuse(reply: [1, 1], .malformed)])
    }

    @Test func `a dialogue may arrive byte by byte`() {
        let whole = [5, 2, 0, 2] + Self.logIn + Self.v4Request + [7]
        let split = Self.play(whole.map { [$0] }, password: .required)
        #expect(split == Self.play([whole], password: .required))
        #expect(split.steps.count == 4 && split.unread == [7])
    }

    @Test func `a reply has the form of §6`() {
        #expect(SocksReply.succeeded.bytes == [5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        #expect(SocksReply.allCases.map { $0.bytes[1] } == Array(0...8))
    }
}
