import EventLoop
import Glibc
import Provisioning
import Settings
import Testing

@testable import Disk
@testable import larder

@Suite("larder serve: limits and addresses at the start")
struct StartTests {
    static let limits: [(soft: UInt64, hard: UInt64, raised: UInt64?)] = [
        (1024, 4096, 4096),
        (1024, 1_048_576, 65_536),
        (1024, .max, 65_536),
        (1024, 1024, nil),
        (65_536, .max, nil),
        (1_048_576, 1_048_576, nil),
        (256, 512, 512),
    ]
    @Test(arguments: limits) func `the soft limit of descriptors becomes the hard one, 65,536 at most`(
        _ row: (soft: UInt64, hard: UInt64, raised: UInt64?)
    ) {
        #expect(DescriptorLimit.raised(soft: row.soft, hard: row.hard) == row.raised, "\(row)")
    }

    @Test func `a limit that stays low is warned about`() {
        #expect(DescriptorLimit.warning(soft: 1023)?.contains("1023 files and connections") == true)
        #expect(DescriptorLimit.warning(soft: 1024) == nil)
    }

    static let hints: [(error: SocketError, address: String, hint: String?)] = [
        (
            .addressInUse, "127.0.0.1:3129",
            "another Larder may be running: set admin.address to another port, or to off"
        ),
        (.addressInUse, "/run/a", "another Larder may be running: set admin.address to another path, or to off"),
        (
            .failed(.bind, errno: EADDRNOTAVAIL), "192.0.2.1:1",
            "no interface of this machine has this address: change admin.address"
        ),
        (
            .failed(.bind, errno: EACCES), "127.0.0.1:80",
            "this user may not listen on this port: set admin.address to one of 1024 or more, or to off"
        ),
        (.failed(.bind, errno: EACCES), "/run/a", nil),
        (.failed(.bind, errno: ENOMEM), "127.0.0.1:80", nil),
    ]
    @Test(arguments: hints.indices) func `an address that cannot be used comes with the setting to change`(
        _ index: Int
    ) {
        let row = Self.hints[index]
        let hint = listeningHint(
            row.error, address: row.address, key: "admin.address", alternative: "off", isFromFile: true)
        #expect(hint == row.hint)
    }

    @Test func `without a configuration file the hint names one`() {
        let hint = listeningHint(.addressInUse, address: "127.0.0.1:3128", key: "listen", isFromFile: false)
        #expect(hint == "another Larder may be running: set listen in larder.yaml to another port")
    }

    @Test func `the smallest disk tier that may be configured is the smallest one that works`() {
        #expect(diskSizeMin == Directory.sizeMin)
    }
}
