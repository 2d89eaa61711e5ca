// A stand-in for the message of ROS 2, for tests alone.
#pragma once
#include <memory>
#include <string>
#include <vector>
namespace sensor_msgs::msg {
struct JointState {
    using SharedPtr = std::shared_ptr<JointState>;
    std::vector<std::string> name;
    std::vector<double> position, velocity, effort;
};
}  // namespace sensor_msgs::msg
