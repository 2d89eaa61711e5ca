// A node of ROS 2 that holds an arm at a target: joint states in, efforts by computed torque out.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/float64_multi_array.hpp>

#include "inverse_dynamics.h"

// The joints in the order of the exported function, as its header lists them.
static const std::array<std::string, 6> JOINTS = {"joint1", "joint2", "joint3", "joint4", "joint5", "joint6"};
static constexpr std::size_t N = JOINTS.size();

class Controller : public rclcpp::Node {
public:
    Controller() : Node("kinetree_controller") {
        if (inverse_dynamics_selftest() != 0)
            throw std::runtime_error("the exported C computes something else here than where it was written");
        const auto target = declare_parameter("target", std::vector<double>(N, 0.0));
        if (target.size() != N)
            throw std::invalid_argument("the parameter target has " + std::to_string(target.size()) +
                                        " numbers; the arm has " + std::to_string(N) + " joints");
        std::copy(target.begin(), target.end(), target_.begin());
        stiffness_ = declare_parameter("stiffness", 100.0);  // [1/s^2]
        damping_ = declare_parameter("damping", 20.0);       // [1/s]
        commands_ = create_publisher<std_msgs::msg::Float64MultiArray>("/effort_controller/commands", 1);
        states_ = create_subscription<sensor_msgs::msg::JointState>(
            "/joint_states", 1, std::bind(&Controller::update, this, std::placeholders::_1));
    }

private:
    // Computed torque: the arm behaves like independent oscillators, critically damped by default.
    void update(const sensor_msgs::msg::JointState::SharedPtr state) {
        std::array<double, N> q, qd, qdd;
        for (std::size_t i = 0; i < N; ++i) {
            const auto found = std::find(state->name.begin(), state->name.end(), JOINTS[i]);
            const auto k = static_cast<std::size_t>(found - state->name.begin());
            if (k >= state->position.size() || k >= state->velocity.size()) {
                RCLCPP_WARN(get_logger(), "joint states without position and velocity of %s", JOINTS[i].c_str());
                return;
            }
            q[i] = state->position[k];
            qd[i] = state->velocity[k];
            qdd[i] = stiffness_ * (target_[i] - q[i]) - damping_ * qd[i];
        }
        std_msgs::msg::Float64MultiArray command;
        command.data.resize(N);
        inverse_dynamics(q.data(), qd.data(), qdd.data(), command.data.data());
        commands_->publish(command);
    }

    std::array<double, N> target_;
    double stiffness_, damping_;
    rclcpp::Publisher<std_msgs::msg::Float64MultiArray>::SharedPtr commands_;
    rclcpp::Subscription<sensor_msgs::msg::JointState>::SharedPtr states_;
};

int main(int argc, char **argv) {
    rclcpp::init(argc, argv);
    rclcpp::spin(std::make_shared<Controller>());
    rclcpp::shutdown();
    return 0;
}
