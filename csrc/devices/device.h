// A device is named by the driver that serves it and a number; drivers are registered at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace renga {

// A Device says which memory an array lives in. The default is the host, whose memory Python
// shares.
struct Device {
  std::uint8_t driver = 0;  // position in the registry; 0 is the host, 1 is kMeta
  std::int16_t index = 0;   // which one of the driver's devices

  bool operator==(const Device&) const = default;
  bool is_host() const { return driver == 0; }
  bool is_meta() const { return driver == 1; }
};

// Arrays on this device have a shape and a dtype but no elements. Operations on them compute shapes
// and nothing else: a pipeline follows its other stages so.
inline constexpr Device kMeta{1, 0};

// A Driver is what the rest of the core needs of a kind of device. There is one instance per kind,
// never destroyed.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string name() const = 0;
  virtual int count() const = 0;  // 0 where none can be used
  // Raw memory, aligned to at least 64 bytes; nullptr where there is none left.
  virtual void* reserve(std::size_t bytes, int index) = 0;
  // Gives memory back, at the latest in finish_releases(): this does not wait for the device.
  virtual void release(void* block, std::size_t bytes, int index) = 0;
  virtual void finish_releases(int) {}
  // Gives memory back but not its addresses, whose contents are lost; false where that cannot be.
  virtual bool forget(void*, std::size_t, int) { return false; }
  virtual void copy_from_host(void* to, const void* from, std::size_t bytes, int index) = 0;
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes, int index) = 0;
  virtual void copy_within(void* to, const void* from, std::size_t bytes, int index) = 0;
  virtual void synchronize(int index) = 0;
};

// How many kinds of devices there may be.
inline constexpr std::size_t kMostDrivers = 8;
// Registers `driver` and returns its number, on any thread. Called once per kind, from the driver's
// own file. Throws std::length_error beyond kMostDrivers.
std::uint8_t register_driver(Driver* driver);
Driver& driver_of(Device device);
// The registered drivers in order of registration; the host's first.
std::span<Driver* const> drivers();

// "cuda:1", or just the driver's name for device 0 of a driver that has a single device.
std::string to_string(Device device);
// The inverse of to_string; throws std::invalid_argument for an unknown name.
Device device_from_string(const std::string& name);

}  // namespace renga
