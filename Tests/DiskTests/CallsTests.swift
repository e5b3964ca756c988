import Foundation
import Glibc
import Testing

@testable import Disk
