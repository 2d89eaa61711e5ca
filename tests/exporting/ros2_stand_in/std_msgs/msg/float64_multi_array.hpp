// A stand-in for the message of ROS 2, for tests alone.
#pragma once
#include <vector>
namespace std_msgs::msg {
struct Float64MultiArray {
    std::vector<double> data;
};
}  // namespace std_msgs::msg
