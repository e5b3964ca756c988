import Foundation
import Glibc
import Testing

/// The root directory of this machine with a layer above it: what a script changes there is in the layer alone, which is gone with the script.
struct SystemLayer: Sendable {
    let place: Workplace

    /// Whether this process may have file systems of its own, and the machine is one that `setup.sh` sets up as root.
    static let isPossible: Bool = {
        guard getuid() == 0, installed("unshare") != nil, installed("update-ca-certificates") != nil else {
            return false
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exec unshare -m sh -c '\(mount("/mnt"))' >/dev/null 2>&1"]
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Mounts the layer, its root and what programs expect there.
    private static func mount(_ directory: String) -> String {
        """
        set -e; at=\(directory); mount -t tmpfs none $at; mkdir $at/upper $at/work $at/root
        mount -t overlay overlay -o lowerdir=/,upperdir=$at/upper,workdir=$at/work $at/root
        mount -t proc proc $at/root/proc; mount --rbind /dev $at/root/dev; mount --rbind /sys $at/root/sys
        mount -t tmpfs none $at/root/run; mount -t tmpfs none $at/root/tmp
        """
    }

    /// Runs a script of the shell in the layer. The workplace is where it is outside.
    func run(_ script: String) async throws -> Workplace.Output {
        try place.write("inside.sh", script.utf8)
        let layer = try place.makeDirectory("layer")
        let outside = """
            \(Self.mount(layer))
            mkdir -p $at/root\(place.directory); mount --rbind \(place.directory) $at/root\(place.directory)
            exec chroot $at/root /bin/sh \(place.path("inside.sh"))
            """
        return try await place.run("unshare", ["-m", "sh", "-c", outside], within: .seconds(400))
    }
}
